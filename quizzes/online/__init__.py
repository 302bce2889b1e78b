"""A notebook's view of a quiz that the service judges: shown, answered in the background, kept with its receipts."""
