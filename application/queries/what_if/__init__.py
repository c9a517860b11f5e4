"""What-if: decides recorded spawns and messages again."""
