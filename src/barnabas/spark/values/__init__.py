"""Values of records as typed columns, one module a format."""
