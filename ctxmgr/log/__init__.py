"""Log format 1 and nothing above it: records, journal, reader, masking, ids. Start with `codec` and `journal`."""
