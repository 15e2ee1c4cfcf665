"""What tinytorch calls itself where values are shown: ``as_torch`` sets another name."""

shown = "tinytorch"
