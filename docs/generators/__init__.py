"""What the generated pages and blocks of docs/ are made from."""
