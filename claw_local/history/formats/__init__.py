"""One module for each program whose chats can be read. They turn its data into `GivenChat`, and know nothing else."""
