"""OpenClaw's own files are read here. Session notes are written, and with approval hashes of its trust ledger; nothing
else.
"""
