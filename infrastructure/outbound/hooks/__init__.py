"""Hooks and webhooks over HTTP."""
