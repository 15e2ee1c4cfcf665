"""``torch.utils.model_zoo``, which brings nothing."""

from ..hub import load_state_dict_from_url, tqdm

__all__ = ["load_url", "tqdm"]

load_url = load_state_dict_from_url
