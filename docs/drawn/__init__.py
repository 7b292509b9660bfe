"""Numbers for the pages, drawn from the records in results/: one function a block, its name is the block's."""
