"""The pages: the same data as the interface for programs, for people in front of a browser.

``routers.ROUTERS`` lists the pages; each file holds one page or one flow. They work without JavaScript, which
only adds live quotes and charts that can be pointed at.
"""
