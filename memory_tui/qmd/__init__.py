"""The program QMD, which answers in the place of the built-in index where a person chose that."""
