"""The inbox: what in the notes needs a decision, with the change that each decision makes."""
