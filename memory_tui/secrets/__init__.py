"""Where a text holds a key or a password: the formats of known keys, the finder, and records that do not show them."""
