"""Values of records as typed columns, one module per format."""
