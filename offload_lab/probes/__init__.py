"""What `offload-lab measure` measures with: one probe a module. `measuring.py` puts them together."""
