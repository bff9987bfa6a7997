"""The wire: messages declared once, compiled to codecs, wrapped in headers and frames.

`apis` is the table of what can be asked; `codec` turns messages into bytes and back; `frame` makes
whole requests and responses. No socket is touched here, and no byte of a record is looked at.
"""
