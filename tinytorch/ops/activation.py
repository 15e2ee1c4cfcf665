"""Operators: softmax, normalisation, dropout, embedding."""
