"""What the assistant may do in a folder its owner gave it: look, search, write, run, and ask MCP servers.

It must never know about chats, models or learning. Nothing here asks the person anything: it says what would be done,
and does it when told to.
"""
