"""Who may read or write what: rules are handed in, answers come out; nothing is stored and nothing is looked up."""
