"""Credentials of agents, from the files in their folders."""
