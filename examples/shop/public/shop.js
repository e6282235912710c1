// Updates an order's page while it is open.
const order = document.getElementById('order');
if (order) {
  new EventSource(order.dataset.events).onmessage = ({ data }) => {
    const { seen, html } = JSON.parse(data);
    // The first message usually repeats what the page shows.
    if (String(seen) === order.dataset.seen) return;
    order.dataset.seen = seen;
    order.innerHTML = html;
  };
}
