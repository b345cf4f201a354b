"""Other programs' APIs (OpenAI's, Anthropic's, Ollama's) over one assistant. It holds no logic of its own."""
