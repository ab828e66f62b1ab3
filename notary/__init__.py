"""The notary: a party that remembers heads and counter-seals closed runs."""
