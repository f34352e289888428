"""The pipeline's own commands. pyproject.toml names them as entry points; listener/cli/plugins.py adds them."""
