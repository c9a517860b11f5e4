"""Transcripts: rows while a run is in progress, a JSONL file once it is over."""
