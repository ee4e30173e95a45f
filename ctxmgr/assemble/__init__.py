"""What an agent is given: counted, summarised by structure, decided under a token budget, and written as one package."""
