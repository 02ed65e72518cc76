"""The command ``audit``: a report on tables of predictions, or on saved summaries of them."""
