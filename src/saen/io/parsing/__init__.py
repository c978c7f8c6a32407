"""What the formats are read with: archives, text, tables, and graphs out of rows and records."""
