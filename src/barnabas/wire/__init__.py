"""The wire: messages declared once, compiled to codecs, wrapped in headers and frames.

`apis` is the table of APIs; `codec` turns messages into bytes and back; `frame` builds whole
requests and responses. Nothing here touches a socket or looks at the bytes of a record.
"""
