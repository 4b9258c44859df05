"""Results as tables and curves."""
