"""The broker's edge: listener → connection → router → handlers."""
