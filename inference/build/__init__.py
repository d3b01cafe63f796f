"""The builder of kernel images: numba's IR, LLVM's object code for any tier, one flat file each.

`spawn` starts it (and imports neither numba nor LLVM), `__main__` is the child it starts, `compiler` and
`elf` do the work.
"""
