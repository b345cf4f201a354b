"""Who answers: the Engine protocol and the engines behind it. It must never know about the store or what is learned."""
