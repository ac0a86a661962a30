"""Neighbours through the whole stack: what differs between two databases that a promise joins, for free?"""
