"""The service: pages of certificates, and judging online."""
