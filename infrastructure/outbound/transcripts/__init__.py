"""Transcripts: rows while a run goes on, a JSONL file once it is over."""
