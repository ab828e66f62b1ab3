"""The command line: parses, composes the layers below, prints and exits."""
