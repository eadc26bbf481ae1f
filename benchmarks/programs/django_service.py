"""A web service on Django with SQLite behind it: gunicorn --preload --workers 2 --chdir FOLDER django_service:application.

The environment variable SHOP_DATABASE names the database file, which is made before gunicorn forks its workers. An item is read
by its key, a search reads through all names, a basket reads several items, and a history has one query for each order.
"""

import os

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"]}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.http.ConditionalGetMiddleware"],
    ROOT_URLCONF=__name__,
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 (after the settings)
from django.db import connection, models  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import engines  # noqa: E402
from django.urls import path  # noqa: E402

ITEMS, ORDERS = 4_000, 3
PAGE = engines["django"].from_string(
    "<html>{% for one in items %}<p>{{ one.name|title }}: {{ one.price|floatformat:2 }}, {{ one.stock }} left</p>{% endfor %}"
)


class Item(models.Model):
    """What the shop sells."""

    name = models.CharField(max_length=40)
    price = models.IntegerField()
    stock = models.IntegerField()

    class Meta:
        app_label = "shop"


def number_of(request, least=0):
    return (int(request.GET.get("n", 1)) + least) % ITEMS + 1


def item_of(number):
    return Item.objects.get(pk=number)


def page_of(items):
    return HttpResponse(PAGE.render({"items": items}))


def item(request):
    return page_of([item_of(number_of(request))])


def search(request):
    return page_of(list(Item.objects.filter(name__contains=f"{number_of(request) % 97} of 7")[:20]))


def basket(request):
    return page_of(list(Item.objects.filter(pk__in=[number_of(request, 31 * k) for k in range(8)]).order_by("price")))


def history(request):
    return JsonResponse({"orders": [item_of(number_of(request, k)).name for k in range(ORDERS)]})


urlpatterns = [path(page.__name__, page) for page in (item, search, basket, history)]

with connection.schema_editor() as editor:
    editor.create_model(Item)
Item.objects.bulk_create(Item(name=f"item {n % 97} of {n}", price=n % 50 + 1, stock=n % 7) for n in range(ITEMS))
connection.close()  # a connection must not be shared with the workers
application = get_wsgi_application()
