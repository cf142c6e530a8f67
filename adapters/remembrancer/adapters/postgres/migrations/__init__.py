"""How the schema came to be, a revision at a time; what there is, is told by ``base/*.sql``."""
