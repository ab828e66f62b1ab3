"""Receipt ledger: the vocabulary, the record and its storage."""
