"""The console's pages: a module per subject, each with a function `routes(context)`."""
