"""Attached files: written and removed below the workspace of a child, and nowhere else."""
