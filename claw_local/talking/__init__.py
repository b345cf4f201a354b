"""The rooms of `Assistant`: asking, branches, comparing, titles, private chats. Others use `Assistant`."""
