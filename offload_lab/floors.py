"""What no schedule of a step's work can beat, with the proofs. Pure."""
