"""Text tasks that classify documents or predict characters."""
