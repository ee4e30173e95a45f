"""What agents keep beyond one context: retain, recall and reflect over episodes of the one history."""
