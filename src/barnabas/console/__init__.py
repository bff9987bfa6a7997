"""The console: pages about the cluster, served by the broker itself.

It is given two things, and finds nothing out by other means: a door (`door.Door`), through which
every request of a user passes the same authorizer, quotas and audit log as any client's, and a
window (`window.Window`), which shows what only the broker's process knows. Nothing here decides a
permission, and nothing here is imported by a broker whose console is off.
"""
