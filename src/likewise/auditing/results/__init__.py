"""What people read: each person beside their twin, who is harmed, and results as files."""
