"""Documents of other systems kept in a ledger: their bytes, the verdict by their own rules, and what they say as receipts."""
