"""One module a workflow, and the tools they share."""
