"""Search: a query is retrieved once as evidence, then ranked under any settings."""
