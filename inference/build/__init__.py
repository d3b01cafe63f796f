"""From kernels to images of machine code (build time only)."""
