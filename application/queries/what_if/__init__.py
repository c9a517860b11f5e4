"""What-if: recorded decisions, decided again under another configuration."""
