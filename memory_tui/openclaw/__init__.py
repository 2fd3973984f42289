"""OpenClaw's own files are read here. Session notes are written, and nothing else."""
